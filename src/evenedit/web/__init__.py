"""One web app, several rooms: survey · admin · curation · review · gallery. No build step, no asset from elsewhere."""
