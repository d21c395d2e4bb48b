"""Compute load, skew, forecasts and plans from samples, with Spark. Only this package imports pyspark.

done = restow.pipeline("samples", load="loads", report="report.html")
"""

from restow._stages import make_callable
from restow.pipeline.running import PipelineRun, pipeline

__all__ = ["PipelineRun", "pipeline"]

make_callable(__name__)
