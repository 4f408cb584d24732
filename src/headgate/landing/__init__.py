"""What every table sink needs: types, shapes and changes of tables, as Arrow columns."""
