import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type CheckResult, describeResult } from '../../../src/commands/check/finding.ts'
import type { Asked } from '../../../src/commands/check/part.ts'
import { TABLE } from '../../../src/commands/check/table.ts'
import { columnsOf } from '../../../src/commands/columns.ts'
import { loadWithLocations } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { temporaryDirectory } from '../../support/certificate.ts'
import { HASHED_PASSWORD } from '../../support/sidecar.ts'

/** A row of the table of `check`, what causes it, and what `check` says. */
export interface Case {
  /** The part of the table. */
  readonly part: keyof typeof TABLE
  /** The row; or `nothing tried`, `look failed`. */
  readonly row: string
  readonly title: string
  readonly given: Give
}

type Give = (at: Place) => Given | Promise<Given>

/** Cases of a part, by row and title. */
export function casesOf(
  part: Case['part'],
  rows: Readonly<Record<string, Readonly<Record<string, Give>>>>,
): readonly Case[] {
  return Object.entries(rows).flatMap(([row, titles]) =>
    Object.entries(titles).map(([title, given]) => ({ part, row, title, given })),
  )
}

/** The folder of a case. */
interface Place {
  readonly directory: string
  /** Writes a file that others cannot read, and returns its path. */
  readonly file: (name: string, text: string) => string
}

export interface Given {
  /** In place of a configuration that has nothing wrong. */
  readonly set?: readonly string[]
  readonly asked?: Partial<Omit<Asked, 'config'>>
  /** Which result, if the part has several; default: the first. */
  readonly name?: string
  /** What `upstream` has, when the lines that the remedy says to write are read as a configuration. */
  readonly writes?: object
  /** Looks at what the device or the disk has got, after the check. */
  readonly after?: (result: CheckResult) => unknown
}

/** Runs the part of the table on what a case gives, and expects its row. Returns the lines that are printed, and the exit code. */
export async function tryCase({ part, row, given }: Case): Promise<string> {
  const directory = temporaryDirectory()
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  const { set = [], asked, name, writes, after } = await given({ directory, file })
  const password = set.some((each) => each.startsWith('password'))
    ? []
    : [`password.file=${file('password', `${HASHED_PASSWORD}\n`)}`]
  const addresses = ['listen', 'admin'].map((listener) => `${listener}.address=127.0.0.1:0`)
  const usual = ['upstream.url=http://127.0.0.1:1', 'listen.tls=off', `state_dir=${directory}`, ...addresses]
  const { config } = loadWithLocations({ sets: [...password, ...usual, ...set] })
  const all = {
    config,
    file: undefined,
    places: {},
    clock: systemClock,
    pages: [],
    uploads: undefined,
    ...asked,
  }
  const outcomes = []
  for (const { start } of TABLE[part].runs(all, () => undefined)) outcomes.push(await start())
  const found = outcomes.find((each) => name === undefined || each.result.name === name)
  const { result, exitCode } = found ?? expect.fail('no result')
  expect(found?.row).toBe(row)
  if (writes !== undefined) expect(settingsIn(result.remedy)).toMatchObject(writes)
  // H107: each problem says what it means and what to do, in sentences that go on.
  if (result.result !== 'ok')
    for (const text of [result.message, result.meaning, result.remedy]) expect(text).toMatch(/^\S.{10,}[^.]$/)
  await after?.(result)
  return `${describeResult(result, columnsOf({}))}exit code ${exitCode}\n`
}

function settingsIn(remedy: string | null | undefined): object {
  const [, lines = ''] = /write (upstream: \{(?:[^{}]|\{[^{}]*\})*\})/.exec(remedy ?? '') ?? []
  const file = { path: 'postern.yaml', text: `password: {file: x}\n${lines}\n` }
  return loadWithLocations({ file, sets: ['upstream.url=http://127.0.0.1'] }).config.upstream
}
