from privada.report.page import CSS as REPORT
from privada.service.console.style import CSS


def test_the_console_wears_the_reports_style_and_loads_nothing():
    assert CSS.startswith(REPORT)
    assert "url(" not in CSS
    assert "@import" not in CSS
