"""What `import tokendyno` offers to other programs: a model as an arm runs it, and the commands as functions."""
