"""Arithmetic in words and in digits, drawn by a seed."""

import random

NAMES = (
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Emma",
    "Farid",
    "Grace",
    "Hugo",
    "Ines",
    "Jack",
    "Kofi",
    "Lena",
    "Mina",
    "Noah",
    "Olga",
    "Pablo",
    "Rosa",
    "Sam",
)
GOODS = (
    "apples",
    "books",
    "pencils",
    "tickets",
    "eggs",
    "marbles",
    "stamps",
    "cookies",
    "bottles",
    "chairs",
    "flowers",
    "coins",
)


def problems(rng: random.Random, number: int) -> list[str]:
    """Return so many problems, each another."""
    makers = (_sum, _product, _share, _shop, _speed, _percent, _sequence, _chain, _age, _digits, _equation, _unit)
    found: dict[str, None] = {}
    while len(found) < number:
        found[rng.choice(makers)(rng)] = None
    return list(found)


def _sum(rng: random.Random) -> str:
    a, b = rng.randint(2, 999), rng.randint(2, 999)
    sign = rng.choice("+-")
    return rng.choice(
        ("What is {} {} {}?", "Calculate {} {} {}.", "{} {} {} =", "Work out {} {} {} and show each step.")
    ).format(a, sign, b)


def _product(rng: random.Random) -> str:
    a, b = rng.randint(2, 99), rng.randint(2, 30)
    return rng.choice(
        ("What is {} times {}?", "Multiply {} by {}.", "{} * {} = ?", "How much is {} x {}? Explain how you get there.")
    ).format(a, b)


def _share(rng: random.Random) -> str:
    each, people = rng.randint(2, 12), rng.randint(2, 9)
    goods = rng.choice(GOODS)
    return f"{each * people} {goods} are shared equally among {people} children. How many {goods} does each child get?"


def _shop(rng: random.Random) -> str:
    name, goods = rng.choice(NAMES), rng.choice(GOODS)
    count, price, paid = rng.randint(2, 12), rng.randint(2, 9), rng.choice((50, 100, 120))
    return f"{name} buys {count} {goods} for ${price} each and pays with ${paid}. How much change does {name} get?"


def _speed(rng: random.Random) -> str:
    speed, hours = rng.randint(3, 25) * 5, rng.randint(2, 9)
    return rng.choice(
        (
            f"A train travels at {speed} km/h for {hours} hours. How far does it get?",
            f"A car covers {speed * hours} km in {hours} hours. What is its average speed?",
        )
    )


def _percent(rng: random.Random) -> str:
    share, whole = rng.choice((5, 10, 15, 20, 25, 40, 50, 75)), rng.randint(2, 60) * 20
    return rng.choice((
        f"What is {share}% of {whole}?", f"A jacket costs ${whole}. It is reduced by {share}%. What does it cost now?",
        f"{share} percent of {whole} students play an instrument. How many are that?",
    ))  # fmt: skip


def _sequence(rng: random.Random) -> str:
    first, step = rng.randint(1, 30), rng.randint(2, 15)
    numbers = ", ".join(str(first + step * at) for at in range(5))
    return rng.choice(
        (f"What is the next number: {numbers}, ...?", f"Continue the sequence {numbers} with three more numbers.")
    )


def _chain(rng: random.Random) -> str:
    name, goods = rng.choice(NAMES), rng.choice(GOODS)
    a, b, c = rng.randint(10, 60), rng.randint(2, 9), rng.randint(2, 20)
    told = f"{name} has {a} {goods}, gives {b} away and then gets {c} more."
    return f"{told} How many {goods} does {name} have now? Think step by step."


def _age(rng: random.Random) -> str:
    one, other = rng.sample(NAMES, 2)
    age, more = rng.randint(4, 40), rng.randint(2, 15)
    told = f"{one} is {age} years old. {other} is {more} years older than {one}."
    return f"{told} How old will {other} be in {rng.randint(2, 12)} years?"


def _digits(rng: random.Random) -> str:
    number = rng.randint(100, 99999)
    return rng.choice((
        f"Is {number} even or odd?", f"Write the number {number} in words.",
        f"What is the sum of the digits of {number}?", f"Is {number} divisible by {rng.randint(3, 9)}?",
    ))  # fmt: skip


def _equation(rng: random.Random) -> str:
    a, x, b = rng.randint(2, 9), rng.randint(2, 20), rng.randint(1, 30)
    return rng.choice(("Solve for x: {}x + {} = {}", "Find x if {}x + {} = {}.")).format(a, b, a * x + b)


def _unit(rng: random.Random) -> str:
    value = rng.randint(2, 90)
    one, other = rng.choice(
        (
            ("kilometers", "meters"),
            ("hours", "minutes"),
            ("kilograms", "grams"),
            ("weeks", "days"),
            ("inches", "centimeters"),
            ("miles", "kilometers"),
            ("liters", "milliliters"),
        )
    )
    return f"Convert {value} {one} to {other}."
