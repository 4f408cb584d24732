"""What the formats of OceanBase OMS share."""
