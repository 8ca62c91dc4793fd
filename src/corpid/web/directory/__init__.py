"""The portal: pages for those who administer an entity.

`endpoints` lists its sections, a module each. `page_context` has the person, the entity and the frame of a page, and
`writing` words what a change is refused for.
"""
