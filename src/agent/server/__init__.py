"""What is served beside the graphs: signed addresses, and the routes behind them."""
