"""The nodes of plan_execute: repairing a project whose tests fail."""
