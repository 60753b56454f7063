"""When will the back-run come? A rule of thumb for the mussel boats of Port Kell.

Written by Gu Yizhou for the Skerrow Light Cooperative, from the radar record of 2018 to 2021.
It replaces the pencil list that Tobias Fenn kept on the oil store door, and agrees with it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

DELAY = timedelta(minutes=38)  # after low water in the Narrows, technical note 3
LENGTH = timedelta(minutes=52)
SILL_DEPTH_M = 11.2  # the Renwick Sill, sounding roll 12 of the Meridian Tern
SPRING_RANGE_M = 3.9  # smaller tides never turn at the sill


@dataclass(frozen=True)
class Tide:
    low_water: datetime
    range_m: float


def expect_back_run(tide: Tide, wind_from_degrees: float, wind_speed: float) -> tuple[datetime, datetime] | None:
    """Beginning and end of the back-run that follows this low water, or None when there will be none."""
    northerly = wind_from_degrees >= 315 or wind_from_degrees <= 45
    if tide.range_m < SPRING_RANGE_M or not northerly or wind_speed < 8:
        return None
    begins = tide.low_water + DELAY
    return begins, begins + LENGTH


def clear_water_in_kell_sound(begins: datetime) -> datetime:
    """About when the Ribbon sees daylight again, by Dr Anand's eelgrass survey of 2020."""
    return begins + timedelta(hours=24)
