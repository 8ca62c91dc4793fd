"""The portal: pages for those who administer an entity."""
