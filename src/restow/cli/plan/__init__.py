"""The commands `restow plan …` and `restow show`."""
