// `hawser config ansible` prints an inventory for Ansible, as an inventory script would: every accepted
// device, a group for each tag, and a group of the devices that are online. The gateway's address and the
// SSHID are arguments for ssh. They must not be `ansible_user` and `ansible_host`: with an SSHID as the user,
// Ansible makes a folder called `~user@namespace.device` on the device. With one host for all devices, it
// would use the connection of one device for another.
import os from 'node:os'
import type { Device } from '@hawser/contract/devices'
import type { Command } from '../command.ts'
import { CliError, usageCode } from '../errors.ts'
import { bare, findGateway, sshidOf, type Gateway } from '../openssh.ts'
import { print } from '../print.ts'
import { safeText } from '../safe-text.ts'
import { acceptedDevices, deviceOptions, hasPlainName } from './config.ts'

/** Ansible's own groups: a device of that name would get the tasks for all hosts. */
const groupNames = new Set(['all', 'ungrouped'])

export const configAnsible: Command = {
  words: ['config', 'ansible'],
  summary: 'Prints an inventory for Ansible: your devices, and a group for each tag.',
  options: deviceOptions,
  details: [
    'A tag becomes the group tag_<tag>, with _ for every other character; devices with a tunnel are in the group online.',
    'Let Ansible call it, so that the inventory is always as the fleet is: put it into an executable script.',
  ],
  async run(given, context) {
    const user = given.value('user') ?? os.userInfo().username
    if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(user))
      throw new CliError(`${user} is not a valid user in an inventory.`, usageCode)
    const devices = await acceptedDevices(given, context)
    const usable = devices.filter((device) => hasPlainName(device) && !groupNames.has(device.name))
    for (const { name } of devices.filter((device) => !usable.includes(device)))
      context.say(`${safeText(name)} is left out: Ansible reserves this name. Rename the device.`)
    print(inventoryOf(usable, user, await findGateway(context)), 'json')
  },
}

interface Group {
  readonly hosts: string[]
}

function inventoryOf(devices: readonly Device[], user: string, { host, port }: Gateway): object {
  const hostvars: Record<string, object> = {}
  const groups = new Map<string, Group>([['online', { hosts: [] }]])
  for (const device of devices) {
    hostvars[device.name] = {
      // ansible_host identifies the shared connection of the device; ssh goes to HostName.
      ansible_host: `${device.namespace}.${device.name}`,
      ansible_ssh_common_args: `-o HostName=${bare(host)} -o Port=${port} -o User=${sshidOf(user, device)}`,
    }
    const names = device.tags.map((tag) => `tag_${tag.replaceAll(/\W/g, '_')}`)
    for (const name of new Set([...names, ...(device.online ? ['online'] : [])])) {
      const group = groups.get(name) ?? { hosts: [] }
      group.hosts.push(device.name)
      groups.set(name, group)
    }
  }
  return {
    all: { hosts: devices.map(({ name }) => name) },
    ...Object.fromEntries(groups),
    _meta: { hostvars },
  }
}
