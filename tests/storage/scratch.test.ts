import { test } from 'vitest'
import { sql } from 'kysely'
import { databases, openFresh, namespace } from './databases.ts'
test('x', async () => {
  await using s = await openFresh(databases[1]!)
  const { tenant_id: t } = await namespace(s)
  await sql.raw(`set session_replication_role=replica; insert into devices (uid,tenant_id,name,mac,public_key,info_id,info_pretty_name,info_version,info_arch,info_platform,status,status_update_at,created_at,remote_addr,position,public_url,public_url_address,tags,last_seen,online)
   select 'uid'||i, '${t}', 'device-'||i, 'mac'||i, 'k', 'debian','Debian 12','v1','amd64','native', case when i%10=0 then 'pending' else 'accepted' end, '2026','2026'||i,'1.2.3.'||(i%255),'{}',0,'', case when i%1000=0 then '["rare"]' when i%2=0 then '["common"]' else '[]' end, '2026'||(i*7919::bigint%200000), i%2 from generate_series(1,100000) i;
   insert into device_tags select tenant_id, 'common', id from devices where tags like '%common%';
   insert into tallies values ('${t}','devices.accepted',90000),('${t}','devices.pending',10000),('${t}','tag.accepted.common',49900);set session_replication_role=origin; analyze`).execute(s.opened.db)
  console.log('made')
  const { here } = { here: s.stores.of(t) }
  for (const [label, q] of Object.entries({
    plain: { groups: [], sort: 'name', order: 'asc', page: 1, per_page: 10 },
    status: { groups: [], sort: 'status', order: 'desc', page: 1, per_page: 10 },
    deep: { groups: [], sort: 'last_seen', order: 'desc', page: 700, per_page: 100 },
    tag: { groups: [{ join: 'and', conditions: [{ property: 'tags', operator: 'eq', value: 'common' }] }], sort: 'name', order: 'asc', page: 1, per_page: 10 },
    tag1: { status: 'accepted', groups: [{ join: 'and', conditions: [{ property: 'tags', operator: 'eq', value: 'common' }] }], sort: 'name', order: 'asc', page: 1, per_page: 10 },
    arch: { groups: [{ join: 'and', conditions: [{ property: 'info.arch', operator: 'eq', value: 'amd64' }] }], sort: 'name', order: 'asc', page: 1, per_page: 10 },
    contains: { groups: [{ join: 'and', conditions: [{ property: 'name', operator: 'contains', value: 'device' }] }], sort: 'name', order: 'asc', page: 1, per_page: 10 },
    few: { groups: [{ join: 'and', conditions: [{ property: 'name', operator: 'contains', value: '17777' }] }], sort: 'name', order: 'asc', page: 1, per_page: 10 },
  })) {
    await here.devices.list(q as never)
    const a = performance.now()
    const r = await here.devices.list(q as never)
    console.log(label, (performance.now() - a).toFixed(1), r.total, r.items.length)
  }
}, 300000)
