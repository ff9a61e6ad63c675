// The bytes of all devices of a namespace by day, read from the index alone.
export const trafficByDay = {
  name: 'traffic by day',
  statements(): string[] {
    return [
      `create index device_traffic_of_namespace on device_traffic
        (tenant_id, day, idle_received, idle_sent, session_received, session_sent)`,
    ]
  },
}
