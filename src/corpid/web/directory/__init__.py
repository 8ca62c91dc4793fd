"""The portal: pages for those who administer an entity.

`endpoints` lists its sections, most a module each. `page_context` has the person, the entity and the frame of a page, and
submits changes by forms; `member_texts` words what a change of a member is refused for.
"""
