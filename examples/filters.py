"""What ./demo runs."""

import holdfast

print(holdfast.Filter("price > 100").matches({"price": 101.5}))
