import test from 'ava';
import { machineMetrics, octaviaMetrics } from '../../../../agent/pushed/metrics/octavia-metrics.ts';

test('octaviaMetrics() gives listeners, pools and members their names and labels', (t) => {
  const lines = `# HELP haproxy_frontend_current_sessions Number of current sessions.
# TYPE haproxy_frontend_current_sessions gauge
haproxy_frontend_current_sessions{proxy="l"} 1
# HELP haproxy_server_status Current status of the service.
haproxy_server_status{proxy="p:l",server="m",state="UP"} 1
haproxy_backend_active_servers{proxy="p:l"} 2
haproxy_process_pool_used_bytes 7
haproxy_process_listeners 3
`;
  t.is(
    octaviaMetrics(lines),
    `# HELP octavia_listener_current_sessions Number of current sessions.
# TYPE octavia_listener_current_sessions gauge
octavia_listener_current_sessions{listener="l"} 1
# HELP octavia_member_status Current status of the member. 0=ERROR, 1=ONLINE, 2=OFFLINE, 3=DRAIN.
octavia_member_status{pool="p:l",member="m",state="UP"} 1
octavia_pool_active_members{pool="p:l"} 2
octavia_memory_pool_used_bytes 7
octavia_loadbalancer_listeners 3
`,
  );
});

test('octaviaMetrics() leaves out unknown metrics and the way by which metrics are read', (t) => {
  const lines = `haproxy_process_nbthread 2
haproxy_frontend_status{proxy="prometheus-exporter-internal-endpoint"} 1
haproxy_backend_status{proxy="prometheus-exporter-agent"} 1
haproxy_constructor_x 1
haproxy_server_constructor 1
go_threads 7
`;
  t.is(octaviaMetrics(lines), '');
});

test('machineMetrics() rounds to a tenth', (t) => {
  t.regex(machineMetrics({ cpu: 50, memory: 23.46 }), /_cpu 50\.0\n[\s\S]*_memory 23\.5\n$/);
});
