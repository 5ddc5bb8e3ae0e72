-- A journal of version 3, as `sqlite3 FILE .dump` writes it. Never change it: journals like it exist.
BEGIN TRANSACTION;
CREATE TABLE events (
	number INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	time DOUBLE NOT NULL, 
	details TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "events" VALUES(0,1,'renamed','Ann',1700000001.5,'{"category":2,"name":"mallard"}');
INSERT INTO "events" VALUES(1,3,'moved','Ann',1700000002.5,'{"sighting":2}');
CREATE TABLE meta (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('newfound journal','3');
CREATE TABLE models (
	id INTEGER NOT NULL, 
	fingerprint TEXT NOT NULL, 
	about TEXT NOT NULL, 
	time DOUBLE NOT NULL, 
	taught BLOB NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "models" VALUES(1,'a fingerprint','{"classes":["cat","dog"]}',1700000000.0,X'67656E65736973');
CREATE TABLE places (
	sighting INTEGER NOT NULL, 
	part BIGINT NOT NULL, 
	pinned BOOLEAN NOT NULL, 
	PRIMARY KEY (sighting), 
	FOREIGN KEY(sighting) REFERENCES sightings (number)
);
INSERT INTO "places" VALUES(2,0,1);
CREATE TABLE sightings (
	number INTEGER NOT NULL, 
	image TEXT, 
	content BLOB, 
	part BIGINT NOT NULL, 
	category BIGINT NOT NULL, 
	created BOOLEAN NOT NULL, 
	score DOUBLE, 
	cut DOUBLE, 
	probability DOUBLE, 
	new_probability DOUBLE, 
	runners_up TEXT, 
	feature BLOB, 
	model INTEGER NOT NULL, 
	time DOUBLE NOT NULL, 
	PRIMARY KEY (number), 
	FOREIGN KEY(model) REFERENCES models (id)
);
INSERT INTO "sightings" VALUES(0,'a.jpg',X'00000000000000000000000000000000',2,2,1,0.75,0.5,0.875,0.125,'[[1,0.5,0.0625],[0,0.25,0.03125]]',X'003C0000',1,1700000000.5);
INSERT INTO "sightings" VALUES(1,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,1,1700000000.5);
INSERT INTO "sightings" VALUES(2,'ü.jpg',X'02020202020202020202020202020202',2,2,0,0.75,0.5,NULL,NULL,'[]',X'003C0000',1,1700000000.5);
CREATE TABLE snapshots (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	sightings BIGINT NOT NULL, 
	events BIGINT NOT NULL, 
	genesis BOOLEAN NOT NULL, 
	state BLOB NOT NULL, 
	piece INTEGER DEFAULT '0' NOT NULL
);
INSERT INTO "snapshots" VALUES(1,0,0,1,X'67656E65736973',0);
INSERT INTO "snapshots" VALUES(2,3,1,0,X'6C6174',0);
INSERT INTO "snapshots" VALUES(3,3,1,0,X'6572',1);
CREATE INDEX ix_sightings_content ON sightings (content);
CREATE INDEX ix_sightings_part ON sightings (part);
CREATE INDEX ix_places_part ON places (part);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('snapshots',3);
COMMIT;
