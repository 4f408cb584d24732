"""All ceilings, in one place. A message beyond one of them is an `invalid` event, never a crash."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest message decoded, before and after decompression; option `max-message-bytes`."""

KEPT_BYTES = 64 * 1024
"""How much of a message over that limit is kept, beside its size and hash."""

MAX_EVENTS_PER_MESSAGE = 100_000
"""Most row changes one message may hold."""

MAX_REPEATED_BYTES = 256 * 1024 * 1024
"""Most bytes that one message's rows may share (types, statement, names), counted per row."""

MAX_PLAIN_EXPONENT = 5_000
"""Decimal exponents beyond this stay in scientific notation instead of growing into zeros."""

BATCH_ROWS = 1_000
"""Messages decoded at a time: few enough to stay in the processor's cache."""

EVENTS_AT_ONCE = 20_000
"""Events after which no further message is decoded before these are handed on."""

SPLICED_ROWS = 10_000
"""Messages spliced at a time: as many as Spark hands over, as each time costs a millisecond."""

BATCH_BYTES = 32 * 1024 * 1024
"""Bytes of messages after which an Arrow batch of events is handed on."""

EXPANDED_BYTES = 512 * 1024 * 1024
"""Where messages hold several rows: bytes of messages, counted per row, of one batch of events."""

CACHED_BYTES = 32 * 1024 * 1024
"""Bytes of keys that one cache of repeated parts (type maps, names) holds before it starts anew."""

CACHED_KEY_BYTES = 256 * 1024
"""A longer part is worked out each time."""

IN_PROCESS_BYTES = 128 * 1024 * 1024
"""Input up to this size is decoded by the command line itself; larger input goes through Spark."""
