// The German catalogue, by area. A text stands in the file of the page that shows it first.
import { access } from './access.ts'
import { account } from './account.ts'
import { auditActions } from './audit-actions.ts'
import { common } from './common.ts'
import { devicePage } from './device-page.ts'
import { deviceFilters } from './device-filters.ts'
import { devices } from './devices.ts'
import { find } from './find.ts'
import { namespace } from './namespace.ts'
import { operations } from './operations.ts'
import { palette } from './palette.ts'
import { people } from './people.ts'
import { player } from './player.ts'
import { refusals } from './refusals.ts'
import { sentences } from './sentences.ts'
import { server } from './server.ts'
import { services } from './services.ts'
import { sessions } from './sessions.ts'
import { sharing } from './sharing.ts'
import { terminal } from './terminal.ts'

export const de: Readonly<Record<string, string>> = {
  ...access,
  ...account,
  ...auditActions,
  ...common,
  ...devicePage,
  ...deviceFilters,
  ...devices,
  ...find,
  ...namespace,
  ...operations,
  ...palette,
  ...people,
  ...player,
  ...refusals,
  ...sentences,
  ...server,
  ...services,
  ...sessions,
  ...sharing,
  ...terminal,
}
