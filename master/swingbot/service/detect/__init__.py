"""Detection: tips screened, suspected swings proven with fresh boots, noise kept up to date, anchors checked."""
