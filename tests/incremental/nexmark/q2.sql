-- Which bids are for one of certain auctions, and how high are they?
SELECT auction, price FROM bid WHERE mod(auction, 123) = 0
