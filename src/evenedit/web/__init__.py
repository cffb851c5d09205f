"""The web app: survey, admin, curation, review and gallery pages, without a build step or external assets."""
