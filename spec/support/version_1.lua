-- SPDX-License-Identifier: MIT
--
-- The SQL of a store as version 1 wrote it, with some jobs in it.

-- Version 1 kept a row for each target.
local VERSION_1 = [[
pragma auto_vacuum = incremental;
pragma journal_mode = wal;
create table owner (
  id integer primary key autoincrement,
  slot integer not null unique,
  pid integer not null,
  opened_at integer not null
) strict;
create table job (
  key integer primary key autoincrement,
  id text not null unique,
  caller text not null,
  class text not null,
  idem_key blob not null,
  status text not null,
  error text,
  owner integer,
  targets_total integer not null,
  targets_done integer not null default 0,
  targets_failed integer not null default 0,
  bytes integer not null default 0,
  created_at integer not null,
  started_at integer,
  finished_at integer,
  expires_at integer not null,
  attempts integer not null default 0,
  busy_ms integer not null default 0,
  deaths integer not null default 0
) strict;
create index job_idem on job (caller, idem_key);
create index job_caller on job (caller);
create index job_live on job (caller, owner) where status in ('queued', 'running');
create index job_unowned on job (key) where owner is null and status in ('queued', 'running');
create index job_finished on job (finished_at) where finished_at is not null;
create index job_lapsing on job (expires_at) where finished_at is not null;
create table target (
  job integer not null,
  idx integer not null,
  url text not null,
  options text,
  primary key (job, idx)
) strict, without rowid;
create table outcome (
  seq integer primary key,
  job integer not null,
  idx integer not null,
  content blob,
  meta text,
  error text,
  hint text,
  attempts integer not null,
  started_at integer not null,
  finished_at integer not null
) strict;
create unique index outcome_target on outcome (job, idx);
create table dropped (
  job integer primary key
) strict;
create table gauge (
  id integer primary key check (id = 1),
  live_jobs integer not null,
  finished_bytes integer not null
) strict;
insert into gauge values (1, 3, 4);
pragma application_id = 0x62746368;
pragma user_version = 1;

-- The process of this owner is dead.
insert into owner values (1, 0, 1, 1000);

insert into job (key, id, caller, class, idem_key, status, owner, targets_total, targets_done,
    targets_failed, bytes, created_at, started_at, finished_at, expires_at) values
  (1, '0190a1b2-c3d4-7e5f-8a6b-000000000001', 'ann', 'user',
    x'5a1b75f0067004f8b65afffc7500e63c2156eaaa69a0affee33fbbcd0f543a8a',
    'partial', null, 3, 3, 1, 4,
    1000, 2000, 3000, 9000000000000),
  (2, '0190a1b2-c3d4-7e5f-8a6b-000000000002', 'bob', '',
    x'3db72e56a623873598beeb05516d4034f7281ad2d7fc4cab928f28a2f4c44c0d',
    'queued', null, 2, 0, 0, 0,
    1000, null, null, 9000000000000),
  (3, '0190a1b2-c3d4-7e5f-8a6b-000000000003', 'cid', '',
    x'66f5267f20094ad78b4598cee11ebeab3ce183db8f2004a9bfac697bab34d27f',
    'running', 1, 2, 1, 0, 1,
    1000, 2000, null, 9000000000000),
  (5, '0190a1b2-c3d4-7e5f-8a6b-000000000005', 'dan', '',
    x'23fb99567ca963ce3beee10feb14c67329cddf02d68c3072148fd836eea329f6',
    'queued', null, 5000, 0, 0, 0,
    1000, null, null, 9000000000000);
insert into target values
  (1, 0, 'a0', null), (1, 1, 'a1', '{"mode":"text"}'), (1, 2, 'ä2', null),
  (2, 0, 'b0', '{"grep":"ß"}'), (2, 1, 'b1', null),
  (3, 0, 'c0', null), (3, 1, 'c1', null);
insert into target
  with recursive n (idx) as (select 0 union all select idx + 1 from n where idx < 4999)
  select 5, idx, 'https://example.com/' || idx || iif(idx = 17, hex(zeroblob(50000)), ''), null
  from n;
insert into outcome values
  (1, 1, 0, x'6f6e', '{"t":1}', null, null, 1, 2000, 2001),
  (2, 3, 0, x'63', null, null, null, 1, 2000, 2001),
  (3, 1, 1, null, null, 'no luck', 'try again', 2, 2000, 2001),
  (4, 1, 2, x'6e65', null, null, null, 1, 2000, 3000);
-- A job that is on its way out.
insert into dropped values (4);
insert into target values (4, 0, 'd0', null), (4, 1, 'd1', null);
insert into outcome values (5, 4, 0, x'64', null, null, null, 1, 2000, 2001);
]]

-- The result with its meta, {"t":1}, counts with 7 bytes.
local BYTES = "update job set bytes = 11 where key = 1; update gauge set finished_bytes = 11;"

return VERSION_1 .. BYTES
