"""The server: who may reach it, with which password, and which requests it refuses."""
