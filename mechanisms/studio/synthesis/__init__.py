"""From a request to demonstrations with a certificate."""
