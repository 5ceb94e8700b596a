"""All releases of a data set as one document: Markdown for people, JSON for programs, YAML for the registry.

Each is drawn from a `discreet.deployment.Deployment`, and from nothing else.
"""

from __future__ import annotations
