import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ROOT } from './dashboard.ts'

/** An alert of `deploy/postern.rules.yml`. */
export interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: Readonly<Record<string, string>>
}

/** All alerts, in the order of the file. */
export function readRules(): readonly Rule[] {
  const text = readFileSync(join(ROOT, 'deploy/postern.rules.yml'), 'utf8')
  // A file of this repository; promtool checks its form in test/deploy.test.ts.
  const { groups } = parse(text) as { groups: readonly { rules: readonly Rule[] }[] }
  return groups.flatMap((group) => group.rules)
}
