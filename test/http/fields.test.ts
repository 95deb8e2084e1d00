import { expect, it } from 'vitest'
import {
  fieldLines,
  fieldNamesIn,
  fieldValues,
  groupFields,
  keepFields,
  listMembers,
  withoutBlanks,
} from '../../src/http/fields.ts'

const fields = ['Via', '1.1 a, ,\t1.0 B', 'Host', 'x', 'VIA', '2 c']

it('fieldValues returns every value of a field in order and ignores the case of its name', () => {
  expect(fieldValues(fields, 'via')).toEqual(['1.1 a, ,\t1.0 B', '2 c'])
  expect(fieldValues(fields, 'vi')).toEqual([])
})

it('listMembers splits a list and drops empty members (RFC 9110 §5.6.1)', () => {
  expect(listMembers(fieldValues(fields, 'via'))).toEqual(['1.1 a', '1.0 b', '2 c'])
})

it('withoutBlanks removes spaces and tabs around a value, and nothing else', () => {
  expect(withoutBlanks(' \t a b\u00a0\t ')).toBe('a b\u00a0')
  expect(withoutBlanks(' \t ')).toBe('')
})

it('fieldLines writes the lines of a head unchanged', () => {
  expect(fieldLines(fields)).toBe('Via: 1.1 a, ,\t1.0 B\r\nHost: x\r\nVIA: 2 c\r\n')
  expect(fieldLines([])).toBe('')
})

it('keepFields preserves casing and order, and namesIn lists each name once', () => {
  expect(keepFields(fields, (name) => name !== 'via')).toEqual(['Host', 'x'])
  expect(keepFields(fields, (_, value) => value.includes('c'))).toEqual(['VIA', '2 c'])
  expect([...fieldNamesIn(fields)]).toEqual(['via', 'host'])
})

it('groupFields groups repeated fields as Node does, even one named __proto__', () => {
  expect({ ...groupFields(['a', '1', 'B', '2', 'a', '3', '__proto__', '4'], 'kept') }).toEqual({
    a: ['1', '3'],
    B: '2',
    ['__proto__']: '4',
  })
  expect({ ...groupFields(['a', '1', 'A', '2'], 'lower') }).toEqual({ a: ['1', '2'] })
})
