"""How the server serves: to whom, behind which password, and which requests it refuses."""
