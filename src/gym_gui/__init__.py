"""The desktop: a Qt client of the trainer daemon."""

from gym_gui.singletons import keep_singletons

keep_singletons()
