-- The init of an attempt's PID namespace: that it has ended proves the tree gone, to whoever looks.

ALTER TABLE placement_attempts ADD COLUMN init_pid         INTEGER CHECK (init_pid > 0);
ALTER TABLE placement_attempts ADD COLUMN init_pgid        INTEGER CHECK (init_pgid > 0);
ALTER TABLE placement_attempts ADD COLUMN init_start_ticks INTEGER CHECK (init_start_ticks >= 0);
ALTER TABLE placement_attempts ADD COLUMN init_boot_id     TEXT;
ALTER TABLE placement_attempts ADD COLUMN init_pidfd_inode INTEGER CHECK (init_pidfd_inode >= 0);

UPDATE placement_store_binding SET schema = 3;
