"""The command line: started servers, a driver, and a screen."""
