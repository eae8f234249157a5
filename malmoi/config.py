"""Types of settings that several commands share; nothing is imported here that takes long."""

from typing import Literal

Precision = Literal["auto", "bf16", "fp32"]
