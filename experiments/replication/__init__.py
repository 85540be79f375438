"""Groups of replicas in processes of their own: what they survive, and how soon they go on."""
