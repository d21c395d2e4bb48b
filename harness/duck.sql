-- Rates and the load model from the sampled tables, for DuckDB.

create or replace temp view seen as
select distinct cluster, topic, partition, epoch_us(moment) t, leader, len(replicas) - 1 followers,
       struct_pack(i := topic_id, l := leader, n := len(replicas)) what
from assignment;

create or replace temp view turns as
select * from (
    select *, lag(what) over line earlier, row_number() over line number from seen
    window line as (partition by cluster, topic, partition order by t))
where number = 1 or earlier is distinct from what;

create or replace temp view runs as
select cluster, topic, partition, leader, followers,
       case when number = 1 then -9e18::bigint else t end begins,
       coalesce(lead(t) over (partition by cluster, topic, partition order by t), 9e18::bigint) ends
from turns;

create or replace temp view readings as
select distinct r.cluster, r.topic, r.partition, 0 kind, '' who, epoch_us(r.moment) t, size v,
       (begins, r.topic_id)::varchar guard, null::bigint low, null::int epoch, followers
from replicas r join runs u on (r.cluster, r.topic, r.partition, r.broker) = (u.cluster, u.topic, u.partition, u.leader)
     and epoch_us(r.moment) >= begins and epoch_us(r.moment) < ends
where not is_future
union all
select distinct cluster, topic, partition, 1, '', epoch_us(moment), latest, '', earliest, leader_epoch, null from offsets
union all
select distinct cluster, topic, partition, 2, "group", epoch_us(moment), committed, '', null, null, null from groups
where committed is not null and topic is not null;

create or replace temp view steps as
select *, case when (t - t0 > 0 and t - t0 <= getvariable('gap_us') and guard = guard0 and v >= v0 
       and coalesce(v0 >= v00 or t0 - t00 > getvariable('gap_us'), true)
       and coalesce(v1 >= v or t1 - t > getvariable('gap_us'), true) and coalesce(low >= low0, true) and coalesce(epoch >= epoch0, true))
       then 1 end good
from (select *, lag(t) over line t0, lag(t, 2) over line t00, lead(t) over line t1, lag(v) over line v0, lag(v, 2) over line v00, lead(v) over line v1,
             lag(guard) over line guard0, lag(low) over line low0, lag(epoch) over line epoch0
      from readings
      window line as (partition by cluster, topic, partition, kind, who order by t, v));

create or replace temp view each as
select cluster, topic, partition, kind, who, t - t % getvariable('window_us') as start, sum(good * (v - v0)) grown,
       sum(good * (t - t0)) / 1e6 as seconds, count(*) as samples, arg_max(v, (t, v)) as last, avg(v) as level, avg(v - low) as depth,
       coalesce(bool_or(good = 1 and low > low0), false) as trimmed, max(followers) followers
from steps group by all;

create or replace temp view rates as
with wide as (
    select cluster, topic, partition, start,
        coalesce(max(seconds) filter (kind < 2), 0) as seconds,
        coalesce(sum(samples) filter (kind < 2), 0)::bigint samples,
        max(last) filter (kind = 0) as size,
        max(grown / seconds) filter (kind = 0) swelling,
        max(followers) followers,
        max(grown / seconds) filter (kind = 1) messages_in,
        coalesce(bool_or(trimmed) filter (kind = 1), false) as trimmed,
        max(level) filter (kind = 0) / nullif(max(depth) filter (kind = 1), 0) as message,
        case when count(*) filter (kind = 2 and grown / seconds is null) = 0
             then sum(grown / seconds) filter (kind = 2) end messages_out,
        count(*) filter (kind = 2) > 0 as committed
    from each group by all),
known as (
    select *, case when messages_in = 0 then 0 else messages_in * message end counted from wide),
whole as (
    select *, case when trimmed then coalesce(counted, swelling) else coalesce(swelling, counted) end bytes_in,
           coalesce(start between min(start) filter (committed) over line and max(start) filter (committed) over line, false) consumed
    from known window line as (partition by cluster, topic, partition)),
fetched as (
    select *, case when messages_out = 0 then 0
                   when messages_in > 0 and bytes_in > 0 then messages_out * (bytes_in / messages_in)
                   else messages_out * message end bytes_consumed
    from whole)
select cluster, topic, partition, make_timestamp(start) moment, seconds, samples, size, messages_in, bytes_in,
       bytes_consumed, bytes_in * followers bytes_replicated,
       bytes_in * followers + case when consumed then bytes_consumed else 0 end bytes_out
from fetched;

create or replace temp view model as
with hours as (
    select cluster, topic, partition, (epoch_us(moment) // 3600000000 + 72) % 168 as hour,
        sum(messages_in * seconds) / nullif(sum(seconds) filter (messages_in is not null), 0) messages_in_mean,
        sum(bytes_in * seconds) / nullif(sum(seconds) filter (bytes_in is not null), 0) bytes_in_mean,
        sum(bytes_out * seconds) / nullif(sum(seconds) filter (bytes_out is not null), 0) bytes_out_mean,
        max(bytes_in) bytes_in_peak, max(bytes_out) bytes_out_peak,
        sum(samples)::bigint samples, sum(seconds) as seconds, min(moment) a, max(moment) z, arg_max(size, moment) as size, count(size) n, sum((epoch(moment) / 86400 - 20454)) filter (size is not null) x, sum(size::double) y,
        sum(((epoch(moment) / 86400 - 20454)) ** 2) filter (size is not null) xx, sum(size * ((epoch(moment) / 86400 - 20454))) xy
    from rates group by all),
weeks as (
    select cluster, topic, partition, avg(messages_in_mean) messages_in_mean, avg(bytes_in_mean) bytes_in_mean,
        quantile_cont(bytes_in_peak, 0.95) bytes_in_p95, max(bytes_in_peak) bytes_in_peak,
        avg(bytes_out_mean) bytes_out_mean, quantile_cont(bytes_out_peak, 0.95) bytes_out_p95,
        max(bytes_out_peak) bytes_out_peak, sum(samples)::bigint samples, sum(seconds) as seconds,
        count(*) filter (seconds > 0) as hours, min(a) "first", max(z) "last", arg_max(size, z) as size, (sum(xy) - sum(x) * sum(y) / sum(n)) / nullif(sum(xx) - sum(x) * sum(x) / sum(n), 0) growth
    from hours group by all),
there as (
    select distinct cluster, topic, partition
    from (select *, max(moment) over (partition by cluster, topic) newest, max(moment) over (partition by cluster) newest_of_all
          from assignment)
    where moment = newest and epoch(newest_of_all) - epoch(newest) <= 60)
select cluster, topic, partition, size, growth, messages_in_mean, bytes_in_mean, bytes_in_p95, bytes_in_peak,
       bytes_out_mean, bytes_out_p95, bytes_out_peak, coalesce(samples, 0) as samples, coalesce(hours, 0) as hours, "first", "last",
       coalesce(hours / 168 * case when "last" > "first" then least(1, seconds / epoch("last" - "first")) else 1 end, 0)
       confidence
from there left join weeks using (cluster, topic, partition);
