"""How agents hand work to each other, and what keeps them from talking in circles.

Sessions hand tasks on by `handing`, within the bounds of `loop_guard` and `pairs`;
`consultations` keeps what agents say to each other behind the scenes. Begin with
`loop_guard`; the tools by which agents ask each other are in `actors.collaboration`.
"""

__all__ = ["consultations", "handing", "loop_guard", "messages", "pairs", "rulings"]
