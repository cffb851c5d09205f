"""What everything else stands on: records, errors, hashing, images, colour, plug-ins, provenance, progress."""
