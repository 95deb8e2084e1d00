// Loaded into a process with `--require`: its wall clock is ahead by the milliseconds in the file of `WALL_CLOCK_AHEAD`.
const { readFileSync } = require('node:fs')

const file = process.env.WALL_CLOCK_AHEAD
const now = Date.now
Date.now = () => now() + Number(readFileSync(file, 'utf8'))
