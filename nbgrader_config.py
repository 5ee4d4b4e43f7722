"""nbgrader's settings for this course; any `nbgrader` command run in this folder reads them."""

from traitlets.config import Config

c: Config = get_config()  # noqa: F821  (whoever loads this file provides it)

c.CourseDirectory.course_id = "peakmem"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"

c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("your code comes here")'}
c.ClearSolutions.text_stub = "*Your answer comes here.*"
