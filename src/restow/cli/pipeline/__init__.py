"""The commands `restow collect`, `restow pipeline …` and `restow lake …`."""
