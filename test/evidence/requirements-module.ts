import type { OpenRequirement } from '../../src/commands/check/open-requirement.ts'
import { clausesOf } from './evidence.ts'
import type { Source } from './requirement.ts'
import { SOURCES } from './sources.ts'

/**
 * What `postern check --evidence` knows of the requirements: nothing of those that are `met` or `not met`, because no configuration changes
 * them. The text of a task begins with what is required, because alone it says little.
 */
export function openRequirements(sources: readonly Source[] = SOURCES): readonly OpenRequirement[] {
  return sources.flatMap(clausesOf).flatMap(({ id, clause, requirement }): OpenRequirement[] => {
    const { says, status, vendor } = requirement
    const task = vendor === undefined ? null : `${says} ${vendor}`
    switch (status) {
      case 'met if configured':
        return [{ requirement: id, clause, status, keys: requirement.keys, vendor: task }]
      case 'contributes':
        return requirement.keys === undefined
          ? []
          : [{ requirement: id, clause, status, keys: requirement.keys, vendor: null }]
      case "vendor's task":
        return [{ requirement: id, clause, status, keys: [], vendor: task }]
      default:
        return []
    }
  })
}

/** The module with these requirements for the program. */
export function requirementsModule(sources: readonly Source[] = SOURCES): string {
  const lines = openRequirements(sources).map((required) => `  ${JSON.stringify(required)},\n`)
  return `// Written by \`npm run evidence\` from test/evidence/sources; change it there.
import type { OpenRequirement } from './open-requirement.ts'

/** The requirements of docs/evidence.md that depend on the configuration, and those that are tasks of the vendor. */
export const REQUIREMENTS: readonly OpenRequirement[] = [
${lines.join('')}]
`
}
