// Devices by the build of their agent, so that the outdated ones are found without a look at all of a namespace.
export const agentBuilds = {
  name: 'agent builds',
  statements(): string[] {
    return [`create index devices_by_build on devices (tenant_id, agent_build) where agent_ability <> ''`]
  },
}
