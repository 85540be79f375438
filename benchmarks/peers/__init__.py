"""Holdfast and other systems, in one run, on this machine: events a second, and how long they take.

    .venv/bin/python -m benchmarks.peers [--rounds N] [--only nats,redis] [--quick]

Starts what is installed of nats-server, redis-server, mosquitto, rabbitmq-server and amqtt on loopback, each with its
defaults but for what would make it drop messages, drives each with its usual Python client and Holdfast with its own,
and takes everything down again. What is missing is named. To install it by hand:

    apt-get install mosquitto nats-server redis-server rabbitmq-server
    .venv/bin/pip install nats-py redis hiredis paho-mqtt amqtt aio-pika pyzmq

How it is measured:

- Three processes for every system: the server, one that publishes, one that subscribes, all Python ones on uvloop. A
  rate is the number of events, divided by the time from before the first is published until the last has arrived.
  ZeroMQ has no server: its publisher writes to the subscriber's connections itself, which is the mark to see.
- Where there are 1,000 clients, they are 1,000 connections of one process on asyncio's own event loop, each with a
  subscription. Their events come alone: one for all of them is published when the one before has reached them all, and
  of events for one client each, in turn, 100 are under way at most.
- The systems take turns at each load, so that what else the machine does hits all of them; ratios are taken inside a
  round, and medians over rounds. Servers that are not measured are idle meanwhile.
- One event is one application message on every side. Whoever can pack a hundred events into one NATS message, and
  needs nothing from the server for any one of them, beats all figures here.
- An event of 60 bytes (1 KB) is, for Holdfast, attributes of exactly 60 (1,024) bytes of msgpack: a key, a price and a
  text; the topic and Holdfast's own header (id, time of publication) come on top, about 60 bytes. For the others it is
  a message of so many bytes, which nobody encodes; subject and header come on top. Nobody decodes either: Holdfast
  makes attributes when a program asks for them, and those that count events do not.
- Every event that arrives is counted, and events that do not arrive are reported.

What each does in its fastest usual form is printed with the results, and so is what it guarantees in that form.
"""
