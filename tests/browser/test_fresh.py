"""What came since the last paint is drawn at once, where the axes of that paint say."""

from typing import Any

from tests.browser.chart_page import ChartPage, reply
from tests.support.runs import created
from tokendyno.ui.live.charts import CHARTS

DRAWN = """(charts, head, painted, steps, hidden) => {
  // axes of 10 pixels a token and a millisecond, 200 pixels wide and 100 high
  const axis = (length, l2p) => ({ _offset: 0, _length: length, autorange: true, l2p });
  const x = axis(200, token => 10 * token), y = axis(100, ms => 100 - 10 * ms), other = axis(100, () => 50);
  const plot = { _fullLayout: { xaxis: x, yaxis: y, xaxis2: x, yaxis2: other, xaxis3: x, yaxis3: other } };
  const columns = () => ({
    ...emptySeries(), t: [...Array(painted).keys()], lat: [9, ...Array(19).fill(0.002)].slice(0, painted),
  });
  const series = [columns(), columns()];
  const units = charts.map(() => ({ unit: 'ms', scale: 1 })), box = document.createElement('div');
  const fresh = makeFresh(plot, box, charts);
  fresh.take({ head, series, hidden: new Set(hidden), axis: 'token', units }, series.map(lengthsOf));
  const said = steps.map(values => {
    series.forEach(one => values.forEach(value => { one.t.push(one.t.length); one.lat.push(value); }));
    return fresh.draw();
  });
  const canvas = box.querySelector('canvas'), { width, height } = canvas;
  const alpha = canvas.getContext('2d').getImageData(0, 0, width, height).data.filter((_, i) => i % 4 === 3);
  const rows = [...Array(height).keys()];
  const across = [...Array(width).keys()].filter(px => rows.some(py => alpha[py * width + px] > 100));
  fresh.clear();
  return { said, from: across[0], to: across[across.length - 1], left: box.children.length };
}"""


def drawn(js: ChartPage, painted: int, steps: list[list[float]], hidden: tuple[str, ...] = ()) -> Any:
    head = reply([created()])["head"]
    return js.call(DRAWN, [chart.as_json() for chart in CHARTS], head, painted, steps, list(hidden))


def test_new_points_go_on_from_the_last_that_was_painted(js: ChartPage) -> None:
    found = drawn(js, 5, [[0.003], [0.004, 0.003]])
    assert found["said"] == [False, False] and found["left"] == 0
    assert 38 <= found["from"] <= 42 and 66 <= found["to"] <= 71, "from token 4, the last that was painted, to token 7"


def test_what_lies_beyond_the_axes_asks_for_a_paint(js: ChartPage) -> None:
    assert drawn(js, 5, [[0.003], [0.011]])["said"] == [False, True], "11 ms on an axis of 10"
    assert drawn(js, 20, [[0.003] * 2])["said"] == [True], "token 21 on an axis of 20"
