import type { Axis, LineChart } from '../figure.ts'
import { at, escapeText, short } from './markup.ts'
import { linearScale, logScale, type Scale } from './scale.ts'

const WIDTH = 760
const HEIGHT = 300
const LEFT = 58
const RIGHT = WIDTH - 16
const TOP = 12
const BOTTOM = HEIGHT - 44

/** A line with more points has no dots. */
const MAX_DOTS = 20

/** Lines over a linear or logarithmic axis. They differ by dashes, not only by colour. */
export function drawLines({ x, y, series }: LineChart): string {
  const points = series.flatMap((line) => line.points)
  const across = scaleFor(
    x,
    points.map(([value]) => value),
    [LEFT, RIGHT],
  )
  const up = scaleFor(
    y,
    points.map(([, value]) => value),
    [BOTTOM, TOP],
  )
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="%TITLE%">`,
    ...up.ticks.map((tick) => {
      const height = at(up.place(tick))
      return (
        `<line class="grid" x1="${LEFT}" x2="${RIGHT}" y1="${height}" y2="${height}"/>` +
        `<text class="tick" x="${LEFT - 6}" y="${at(up.place(tick) + 4)}" text-anchor="end">${short(tick)}</text>`
      )
    }),
    ...across.ticks.map((tick) => {
      const left = at(across.place(tick))
      return (
        `<line class="grid" x1="${left}" x2="${left}" y1="${BOTTOM}" y2="${BOTTOM + 4}"/>` +
        `<text class="tick" x="${left}" y="${BOTTOM + 18}" text-anchor="middle">${short(tick)}</text>`
      )
    }),
    `<text class="axis" x="${(LEFT + RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${escapeText(x.label)}</text>`,
    ...series.map((line, i) => {
      const places = line.points.map(([a, b]) => [at(across.place(a)), at(up.place(b))] as const)
      const path = places.map(([left, height], n) => `${n === 0 ? 'M' : 'L'}${left} ${height}`).join('')
      const dots =
        places.length > MAX_DOTS
          ? []
          : places.map(([cx, cy]) => `<circle class="dot s${i}" cx="${cx}" cy="${cy}" r="3.5"/>`)
      return `<path class="line s${i}" d="${path}"/>${dots.join('')}`
    }),
    '</svg>',
  ].join('')
}

function scaleFor(axis: Axis, values: readonly number[], span: readonly [number, number]): Scale {
  return axis.scale === 'log' && values.every((value) => value > 0) && values.length > 0
    ? logScale(values, span)
    : linearScale(Math.max(0, ...values), span)
}

/** The legend, as HTML; empty for a single series. */
export function legend(names: readonly string[], sample: (i: number) => string): string {
  const items = names.map((name, i) => `<li>${sample(i)}${escapeText(name)}</li>`)
  return names.length < 2 ? '' : `<ul class="legend">${items.join('')}</ul>`
}
