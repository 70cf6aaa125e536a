"""What a person is: columns, schemas, codes, and what may change."""
