"""Records, errors, hashing, images, colour and plug-ins that all other packages use."""
