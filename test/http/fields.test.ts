import { expect, it } from 'vitest'
import {
  fieldLines,
  fieldValues,
  groupFields,
  keepFields,
  listMembers,
  namesIn,
  withoutBlanks,
} from '../../src/http/fields.ts'

const fields = ['Via', '1.1 a, ,\t1.0 B', 'Host', 'x', 'VIA', '2 c']

it('finds every value of a field, in order, whatever the case of its name', () => {
  expect(fieldValues(fields, 'via')).toEqual(['1.1 a, ,\t1.0 B', '2 c'])
  expect(fieldValues(fields, 'vi')).toEqual([])
})

it('takes a list apart, without its empty members (RFC 9110 §5.6.1)', () => {
  expect(listMembers(fieldValues(fields, 'via'))).toEqual(['1.1 a', '1.0 b', '2 c'])
})

it('takes spaces and tabs away around a value, and nothing else', () => {
  expect(withoutBlanks(' \t a b\u00a0\t ')).toBe('a b\u00a0')
  expect(withoutBlanks(' \t ')).toBe('')
})

it('writes the lines of a head as they stand', () => {
  expect(fieldLines(fields)).toBe('Via: 1.1 a, ,\t1.0 B\r\nHost: x\r\nVIA: 2 c\r\n')
  expect(fieldLines([])).toBe('')
})

it('keeps the fields that are wanted, with their casing and order, and names each once', () => {
  expect(keepFields(fields, (name) => name !== 'via')).toEqual(['Host', 'x'])
  expect(keepFields(fields, (_, value) => value.includes('c'))).toEqual(['VIA', '2 c'])
  expect([...namesIn(fields)]).toEqual(['via', 'host'])
})

it('groups repeated fields as Node does, also those named like a property of every object', () => {
  expect({ ...groupFields(['a', '1', 'B', '2', 'a', '3', '__proto__', '4'], 'kept') }).toEqual({
    a: ['1', '3'],
    B: '2',
    ['__proto__']: '4',
  })
  expect({ ...groupFields(['a', '1', 'A', '2'], 'lower') }).toEqual({ a: ['1', '2'] })
})
