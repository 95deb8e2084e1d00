// Writes a database of Trivy, a file of bbolt. Standard input is a JSON array of entries: the names of the buckets, the key, the value.
package main

import (
	"encoding/json"
	"log"
	"os"

	"go.etcd.io/bbolt"
)

func main() {
	var entries [][]string
	if err := json.NewDecoder(os.Stdin).Decode(&entries); err != nil {
		log.Fatal(err)
	}
	database, err := bbolt.Open(os.Args[1], 0o600, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = database.Update(func(transaction *bbolt.Tx) error {
		for _, entry := range entries {
			if err := put(transaction, entry); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := database.Close(); err != nil {
		log.Fatal(err)
	}
}

func put(transaction *bbolt.Tx, entry []string) error {
	key, value := entry[len(entry)-2], entry[len(entry)-1]
	bucket, err := transaction.CreateBucketIfNotExists([]byte(entry[0]))
	for _, name := range entry[1 : len(entry)-2] {
		if err != nil {
			return err
		}
		bucket, err = bucket.CreateBucketIfNotExists([]byte(name))
	}
	if err != nil {
		return err
	}
	return bucket.Put([]byte(key), []byte(value))
}
