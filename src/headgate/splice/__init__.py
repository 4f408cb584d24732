"""Conversion of many messages that look alike, at the speed of copying bytes.

Most messages of a topic differ in their values only. What the codecs make of one of them is learnt
(templates.py), and a compiled loop (kernel.py) then does the same to the others: it checks that a
message is the learnt one but for values of the kinds that were tried, and copies these to where
the codecs would write them. Every other message goes to the codecs, which stay the only place that
says what a format is. Now and then a message goes both ways, and the two answers are compared.
"""
