import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TABLE } from '../../../src/commands/check/table.ts'
import { golden } from '../golden.ts'
import { type Case, tryCase } from './case.ts'
import { DEVICE_CASES } from './device-cases.ts'
import { HOST_CASES } from './host-cases.ts'
import { LOGIN_CASES } from './login-cases.ts'
import { SLOW_CASES } from './slow-cases.ts'
import { STORE_CASES } from './store-cases.ts'
import { UPLOAD_CASES } from './upload-cases.ts'

const CASES = [...HOST_CASES, ...STORE_CASES, ...DEVICE_CASES, ...LOGIN_CASES, ...UPLOAD_CASES, ...SLOW_CASES]

const printed = golden(join(import.meta.dirname, 'check.txt'))
const titleOf = ({ part, row, title }: Case): string => `${part}, ${row}: ${title}`

describe('H107 check finds', () => {
  it.each(CASES)('$title', async (each) => printed.put(titleOf(each), await tryCase(each)))
})

it('H107 what check prints is what check.txt says', () => printed.expectSame(CASES.map(titleOf)))

/** Rows that no test of this machine can cause, each with the reason. */
const NOT_CAUSED = new Map([
  ['address: hidden', 'test/commands/check.test.ts runs it under file modes'],
  ['device: delayed acknowledgements', 'test/device/delayed-acks.test.ts moves its clock'],
])

it('each row of the table has a case', () => {
  const rows = Object.entries(TABLE).flatMap(([part, { rows: names }]) =>
    names.map((row) => `${part}: ${row}`),
  )
  const caused = new Set(CASES.map(({ part, row }) => `${part}: ${row}`))
  expect(rows.filter((row) => !caused.has(row))).toEqual([...NOT_CAUSED.keys()])
})
