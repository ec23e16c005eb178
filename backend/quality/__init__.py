"""What an arm costs in quality: which texts it is read with, and how it is compared."""

from tokendyno.backend.quality.texts import Quality as Quality
from tokendyno.backend.quality.texts import QualityText as QualityText
